import CLdpkit

/// An answer to a question, or to one field of a record.
public enum Answer {
    /// A number in the question's unit. Beyond a bound it counts as the bound.
    case number(Double)
    /// The index of a choice from 0. No is 0, yes is 1.
    case choice(UInt32)
    /// "Prefer not to say", for a question that offers it.
    case refusal

    fileprivate var value: ldp_value {
        switch self {
        case .number(let number): ldp_value(kind: LDP_NUMBER.rawValue, choice: 0, number: number)
        case .choice(let index): ldp_value(kind: LDP_CHOICE.rawValue, choice: index, number: 0)
        case .refusal: ldp_value(kind: LDP_REFUSAL.rawValue, choice: 0, number: 0)
        }
    }
}

/// What can go wrong: `ldpkit.h` explains each.
public enum LedgerError: Int32, Error {
    case answer = -1
    case randomShort = -2
    case randomBroken = -3
    case memory = -4
    case answered = -5
    case budget = -6
    case journal = -7
    case storage = -8
}

/// What must be sent: `report` by PUT to the study's address and `id`, or by DELETE with
/// `LDPKit-Withdrawal: ` and `secret` if `isWithdrawn`.
public struct Parcel {
    public let report: [UInt8]
    fileprivate let state: ldp_parcel

    public var id: String {
        withUnsafeBytes(of: state.id) { String(decoding: $0.dropLast(), as: UTF8.self) }
    }

    public var isWithdrawn: Bool { state.withdrawn != 0 }

    public var secret: String {
        let digits = Array("0123456789abcdef")
        return withUnsafeBytes(of: state.secret) { bytes in
            String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
        }
    }
}

/// The answers and reports of this device's life, in a file of private storage that no backup holds.
///
/// One ledger at a time can have the file open, and one thread at a time may use it.
public final class Ledger {
    private let device: UnsafeMutablePointer<ldp_device>

    /// Opens the ledger. All answers together may cost at most `epsilon` and `delta`. A larger budget than an
    /// earlier one counts only with `raise`, which the device's owner must ask for.
    public init(path: String, epsilon: Double, delta: Double = 0, raise: Bool = false) throws {
        precondition(epsilon >= 0 && delta >= 0, "a budget must not be negative")
        var opened: UnsafeMutablePointer<ldp_device>?
        let units = (UInt64(min(epsilon, 1e9) * 0x1p32), UInt64(min(delta, 1) * 0x1p63))
        try checked(ldp_device_open(&opened, path, units.0, units.1, raise ? 1 : 0))
        device = opened!
    }

    deinit {
        ldp_device_close(device)
    }

    /// Answers a study once, with the index of each public field's value in `chosen`. The report then waits.
    public func answer(_ study: ldp_study, _ answers: [Answer], chosen: [UInt32] = []) throws {
        var values = answers.map(\.value)
        defer { values.withUnsafeMutableBytes { ldp_wipe($0.baseAddress, $0.count) } }
        var study = study
        try checked(ldp_device_answer(device, &study, values, values.count, chosen, chosen.count))
    }

    /// Returns all that waits, with the same bytes at each attempt.
    public func pending() throws -> [Parcel] {
        var parcels: [Parcel] = []
        var state = ldp_parcel()
        while try checked(ldp_next(&device.pointee.ledger, &state)) == LDP_OK {
            var report = [UInt8](repeating: 0, count: Int(state.size))
            try checked(ldp_report_bytes(&device.pointee.ledger, &state, 0, &report, state.size))
            parcels.append(Parcel(report: report, state: state))
        }
        return parcels
    }

    /// Notes that the collector has stored, deleted or permanently refused a report.
    public func done(_ parcel: Parcel) throws {
        var state = parcel.state
        try checked(ldp_done(&device.pointee.ledger, &state))
    }

    /// Withdraws all reports of a study, sent or not.
    public func withdraw(_ study: ldp_study) throws {
        var study = study
        try checked(ldp_withdraw(&device.pointee.ledger, &study))
    }
}

@discardableResult
private func checked(_ result: ldp_result) throws -> ldp_result {
    if let error = LedgerError(rawValue: result.rawValue) { throw error }
    return result
}
