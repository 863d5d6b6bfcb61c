package ldpkit

import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** A study as `ldpkit compile --to kotlin` writes it. */
interface Study {
    /** The address of its tables. */
    fun table(): Long
}

/** An answer to a question, or to one field of a record. */
sealed interface Answer {
    /** A number in the question's unit. Beyond a bound it counts as the bound. */
    class Number(val value: Double) : Answer

    /** The index of a choice from 0. No is 0, yes is 1. */
    class Choice(val index: Int) : Answer

    /** "Prefer not to say", for a question that offers it. */
    object Refusal : Answer
}

/** What can go wrong, in the order of `ldp_result`: `ldpkit.h` explains each. */
enum class LedgerError { ANSWER, RANDOM_SHORT, RANDOM_BROKEN, MEMORY, ANSWERED, BUDGET, JOURNAL, STORAGE }

/** The core has refused a call. */
class LedgerException(val error: LedgerError) : Exception("the ledger refuses: $error")

/**
 * What must be sent.
 *
 * Send [report] by PUT to the study's address and [id], or by DELETE with `LDPKit-Withdrawal: ` and [secret]
 * if [isWithdrawn].
 */
class Parcel internal constructor(internal val state: ByteArray, val report: ByteArray) {
    val id = state.decodeToString(0, ID_DIGITS)
    val isWithdrawn = state[ID_DIGITS + 1] != 0.toByte()
    val secret = state.drop(ID_DIGITS + 2).take(SECRET_BYTES).joinToString("") { "%02x".format(it) }
}

/**
 * The answers and reports of this device's life, in a [file] of private storage that no backup holds.
 *
 * All answers together may cost at most [epsilon] and [delta]. A larger budget than an earlier one counts only with
 * [raise], which the device's owner must ask for. One ledger at a time can have the file open.
 *
 * @throws LedgerException as every other function here.
 */
class Ledger(file: File, epsilon: Double, delta: Double = 0.0, raise: Boolean = false) : AutoCloseable {
    private var handle =
        nativeOpen("$file\u0000".encodeToByteArray(), units(epsilon, EPSILON_UNIT), units(delta, DELTA_UNIT), raise)

    init {
        if (handle in FIRST_ERROR..LAST_ERROR) checked(handle.toInt())
    }

    /** Answers a [study] once, with the index of each public field's value in [chosen]. The report then waits. */
    @Synchronized
    fun answer(study: Study, answers: List<Answer>, chosen: List<Int> = emptyList()) {
        val values = memory(answers.size * VALUE_BYTES)
        for (answer in answers) {
            when (answer) {
                is Answer.Number -> values.putInt(1).putInt(0).putDouble(answer.value)
                is Answer.Choice -> values.putInt(2).putInt(answer.index).putDouble(0.0)
                is Answer.Refusal -> values.putInt(3).putInt(0).putDouble(0.0)
            }
        }
        val public = memory(chosen.size * Int.SIZE_BYTES)
        chosen.forEach(public::putInt)
        checked(nativeAnswer(opened(), study.table(), values, answers.size, public, chosen.size))
    }

    /** Returns all that waits, with the same bytes at each attempt. */
    @Synchronized
    fun pending(): List<Parcel> {
        val state = ByteArray(PARCEL_BYTES)
        val parcels = mutableListOf<Parcel>()
        while (checked(nativeNext(opened(), state)) == 0) {
            val report = nativeReport(opened(), state) ?: throw LedgerException(LedgerError.STORAGE)
            parcels += Parcel(state.clone(), report)
        }
        return parcels
    }

    /** Notes that the collector has stored, deleted or permanently refused a report. */
    @Synchronized
    fun done(parcel: Parcel) {
        checked(nativeDone(opened(), parcel.state))
    }

    /** Withdraws all reports of a [study], sent or not. */
    @Synchronized
    fun withdraw(study: Study) {
        checked(nativeWithdraw(opened(), study.table()))
    }

    @Synchronized
    override fun close() {
        nativeClose(handle)
        handle = 0
    }

    private fun opened() = handle.also { check(it != 0L) { "the ledger is closed" } }

    private fun checked(result: Int): Int {
        if (result < 0) throw LedgerException(LedgerError.entries[-result - 1])
        return result
    }

    private fun units(cost: Double, unit: Double): Long {
        require(cost >= 0) { "a budget must not be negative" }
        return (cost * unit).toLong()
    }

    private fun memory(size: Int) = ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder())

    private external fun nativeOpen(path: ByteArray, epsilon: Long, delta: Long, raise: Boolean): Long
    private external fun nativeClose(handle: Long)
    private external fun nativeAnswer(
        handle: Long,
        table: Long,
        values: ByteBuffer,
        valueCount: Int,
        chosen: ByteBuffer,
        chosenCount: Int,
    ): Int
    private external fun nativeNext(handle: Long, parcel: ByteArray): Int
    private external fun nativeReport(handle: Long, parcel: ByteArray): ByteArray?
    private external fun nativeDone(handle: Long, parcel: ByteArray): Int
    private external fun nativeWithdraw(handle: Long, table: Long): Int

    private companion object {
        const val EPSILON_UNIT = 4294967296.0 // 2^32
        const val DELTA_UNIT = 9223372036854775808.0 // 2^63
        const val FIRST_ERROR = -8L
        const val LAST_ERROR = -1L
        const val VALUE_BYTES = 16 // of an ldp_value
        const val PARCEL_BYTES = 80 // of an ldp_parcel

        init {
            System.loadLibrary("ldpkit")
        }
    }
}

// An ldp_parcel begins with the id and a zero, the mark of a withdrawal, and the secret.
private const val ID_DIGITS = 32
private const val SECRET_BYTES = 16
