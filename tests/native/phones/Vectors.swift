import CLdpkit
import Foundation

/// Answers the vectors of a file, each with a ledger of its own: `vectors VECTORS JOURNAL`.
@main
struct Vectors {
    static func main() throws {
        let text = try String(contentsOfFile: CommandLine.arguments[1], encoding: .utf8)
        let lines = text.split(separator: "\n")
        let failed = try lines.enumerated().filter { try !passes($0.offset, $0.element, CommandLine.arguments[2]) }
        failed.prefix(20).forEach { print("failed: \($0.offset) \($0.element)") }
        print("\(lines.count - failed.count) of \(lines.count)")
    }

    static func passes(_ index: Int, _ line: Substring, _ journal: String) throws -> Bool {
        let parts = line.split(separator: "\t")
        try? FileManager.default.removeItem(atPath: journal)
        let ledger = try Ledger(path: journal, epsilon: 1e9, delta: 1)
        do {
            try ledger.answer(vector_study(UInt32(index)).pointee, parts[0].split(separator: " ").map(read))
            let parcels = try ledger.pending()
            return parcels.count == 1 && String(decoding: parcels[0].report, as: UTF8.self) == parts[1]
        } catch LedgerError.answer {
            return parts[1] == "refused"
        }
    }

    static func read(_ text: Substring) -> Answer {
        switch text.first! {
        case "n": .number(Double(text.dropFirst())!)
        case "c": .choice(UInt32(text.dropFirst())!)
        default: .refusal
        }
    }
}
