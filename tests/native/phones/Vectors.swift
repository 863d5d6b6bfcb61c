import CLdpkit
import Foundation

/// Answers the vectors of a file, each with a ledger of its own: `vectors VECTORS JOURNAL`.
@main
struct Vectors {
    static func main() throws {
        let text = try String(contentsOfFile: CommandLine.arguments[1], encoding: .utf8)
        let lines = text.split(separator: "\n")
        try checkMisuse(lines[0], CommandLine.arguments[2])
        let failed = try lines.enumerated().filter { try !passes($0.offset, $0.element, CommandLine.arguments[2]) }
        failed.prefix(20).forEach { print("failed: \($0.offset) \($0.element)") }
        print("\(lines.count - failed.count) of \(lines.count)")
    }

    /// Ends the program unless each mistake of an app is an error.
    static func checkMisuse(_ line: Substring, _ journal: String) throws {
        let ledger = try Ledger(path: journal, epsilon: 0.001)
        precondition(refusal { _ = try Ledger(path: journal, epsilon: 0.001) } == .storage)
        precondition(refusal { try ledger.answer(vector_study(0).pointee, []) } == .answer)
        precondition(refusal { try ledger.answer(vector_study(0).pointee, readAll(line), chosen: [0]) } == .answer)
        precondition(refusal { try ledger.answer(vector_study(0).pointee, readAll(line)) } == .budget)
    }

    static func refusal(of call: () throws -> Void) -> LedgerError? {
        do {
            try call()
            return nil
        } catch {
            return error as? LedgerError
        }
    }

    static func passes(_ index: Int, _ line: Substring, _ journal: String) throws -> Bool {
        let parts = line.split(separator: "\t")
        try? FileManager.default.removeItem(atPath: journal)
        let ledger = try Ledger(path: journal, epsilon: 1e9, delta: 1)
        do {
            try ledger.answer(vector_study(UInt32(index)).pointee, readAll(parts[0]))
            let parcels = try ledger.pending()
            return parcels.count == 1 && String(decoding: parcels[0].report, as: UTF8.self) == parts[1]
        } catch LedgerError.answer {
            return parts[1] == "refused"
        }
    }

    static func readAll(_ line: Substring) -> [Answer] {
        line.prefix { $0 != "\t" }.split(separator: " ").map(read)
    }

    static func read(_ text: Substring) -> Answer {
        switch text.first! {
        case "n": .number(Double(text.dropFirst())!)
        case "c": .choice(UInt32(text.dropFirst())!)
        default: .refusal
        }
    }
}
