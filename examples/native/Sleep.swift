import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A device: answers the study `sleep` once, and sends what waits to its collector.
///
///     sleep JOURNAL answer HOURS yes|no
///     sleep JOURNAL withdraw
///     sleep JOURNAL send
///
/// docs/native.md starts a collector. Then:
///
///     ldpkit compile examples/native/study.json --to swift --collector $COLLECTOR --out app/swift
///     (cd app/swift && cc -std=c99 -O2 -I../../c -c ../../c/*.c ../../c/posix/*.c)
///     swiftc -O -I c/swift -Xcc -Ic -import-objc-header app/swift/study_sleep.h -o app/sleep-swift \
///       c/swift/*.swift app/swift/*.swift examples/native/Sleep.swift app/swift/*.o
///     app/sleep-swift app/journal-swift answer 7.5 no
@main
struct Sleep {
    static let lifetimeEpsilon = 4.0
    static let timeout = 20.0

    static func main() async {
        do {
            try await run(CommandLine.arguments)
        } catch {
            stop("the ledger refuses: \(error)")
        }
    }

    static func stop(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(reason)\n".utf8))
        exit(2)
    }

    static func run(_ words: [String]) async throws {
        let command = words.count > 2 ? words[2] : ""
        let hours = words.count == 5 ? Double(words[3]) : nil
        let pills = words.count == 5 ? ["no", "yes"].firstIndex(of: words[4]) : nil
        let complete = command == "answer" ? hours != nil && pills != nil : words.count == 3
        guard complete, ["answer", "withdraw", "send"].contains(command) else {
            stop("usage: sleep JOURNAL answer HOURS yes|no | withdraw | send")
        }
        let ledger = try Ledger(path: words[1], epsilon: lifetimeEpsilon)
        if let hours, let pills { try ledger.answer(StudySleep.table, [.number(hours), .choice(UInt32(pills))]) }
        if command == "withdraw" { try ledger.withdraw(StudySleep.table) }
        // A report that is not confirmed waits for the next start: docs/payloads.md has the table of answers.
        let session = URLSession(configuration: .ephemeral, delegate: NoRedirects(), delegateQueue: nil)
        var (done, waiting) = (0, 0)
        for parcel in try ledger.pending() {
            if await send(parcel, by: session) {
                try ledger.done(parcel)
                done += 1
            } else {
                waiting += 1
            }
        }
        print("\(done) done, \(waiting) waiting")
        exit(waiting == 0 ? 0 : 1)
    }

    /// Sends a report, or asks for its deletion. Returns whether the collector has confirmed it.
    static func send(_ parcel: Parcel, by session: URLSession) async -> Bool {
        var request = URLRequest(url: URL(string: StudySleep.url + parcel.id)!, timeoutInterval: timeout)
        request.setValue("ldpkit", forHTTPHeaderField: "User-Agent")
        if parcel.isWithdrawn {
            request.httpMethod = "DELETE"
            request.setValue(parcel.secret, forHTTPHeaderField: "LDPKit-Withdrawal")
        } else {
            request.httpMethod = "PUT"
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(parcel.report)
        }
        guard let (body, response) = try? await session.data(for: request),
            let answer = response as? HTTPURLResponse, (200...201).contains(answer.statusCode),
            let receipt = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        else { return false }
        let results = ["stored", "duplicate", "withdrawn"]
        return receipt["id"] as? String == parcel.id && results.contains(receipt["result"] as? String ?? "")
    }
}

/// Follows no redirect.
final class NoRedirects: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
