import java.io.File
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URI
import kotlin.system.exitProcess
import ldpkit.Answer
import ldpkit.Ledger
import ldpkit.Parcel
import ldpkit.StudySleep

// A device on a JVM: answers the study `sleep` once, and sends what waits to its collector.
//
//   java … SleepKt JOURNAL answer HOURS yes|no
//   java … SleepKt JOURNAL withdraw
//   java … SleepKt JOURNAL send

const val LIFETIME_EPSILON = 4.0
const val TIMEOUT_MS = 20_000
val ACCEPTED = 200..201
val RESULTS = listOf("\"stored\"", "\"duplicate\"", "\"withdrawn\"")

/** Sends a report, or asks for its deletion. Returns whether the collector has confirmed it. */
fun send(parcel: Parcel): Boolean {
    val connection = URI(StudySleep.url + parcel.id).toURL().openConnection() as HttpURLConnection
    connection.instanceFollowRedirects = false
    connection.connectTimeout = TIMEOUT_MS
    connection.readTimeout = TIMEOUT_MS
    connection.setRequestProperty("User-Agent", "ldpkit")
    try {
        if (parcel.isWithdrawn) {
            connection.requestMethod = "DELETE"
            connection.setRequestProperty("LDPKit-Withdrawal", parcel.secret)
        } else {
            connection.requestMethod = "PUT"
            connection.setRequestProperty("Content-Type", "application/json")
            connection.doOutput = true
            connection.outputStream.use { it.write(parcel.report) }
        }
        if (connection.responseCode !in ACCEPTED || connection.contentType != "application/json") return false
        val receipt = connection.inputStream.use { it.readBytes().decodeToString() }
        return "\"${parcel.id}\"" in receipt && RESULTS.any { it in receipt }
    } catch (unreached: IOException) {
        return false
    } finally {
        connection.disconnect()
    }
}

fun main(args: Array<String>) {
    Ledger(File(args[0]), LIFETIME_EPSILON).use { ledger ->
        when (args[1]) {
            "answer" -> {
                val pills = if (args[3] == "yes") 1 else 0
                ledger.answer(StudySleep, listOf(Answer.Number(args[2].toDouble()), Answer.Choice(pills)))
            }
            "withdraw" -> ledger.withdraw(StudySleep)
        }
        // A report that is not confirmed waits for the next start: docs/payloads.md has the table of answers.
        val (done, waiting) = ledger.pending().partition(::send)
        done.forEach(ledger::done)
        println("${done.size} done, ${waiting.size} waiting")
        if (waiting.isNotEmpty()) exitProcess(1)
    }
}
