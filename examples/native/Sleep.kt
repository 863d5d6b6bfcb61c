import java.io.File
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URI
import kotlin.system.exitProcess
import ldpkit.Answer
import ldpkit.Ledger
import ldpkit.LedgerException
import ldpkit.Parcel
import ldpkit.StudySleep

// A device on a JVM: answers the study `sleep` once, and sends what waits to its collector.
//
//   java … SleepKt JOURNAL answer HOURS yes|no
//   java … SleepKt JOURNAL withdraw
//   java … SleepKt JOURNAL send
//
// docs/native.md starts a collector. Then, with a JDK in JAVA_HOME (on macOS `darwin` for `linux`, `.dylib` for `.so`):
//
//   ldpkit compile examples/native/study.json --to kotlin --collector $COLLECTOR --out app/kotlin
//   cc -std=c99 -O2 -fPIC -shared -Ic -Ic/posix -Iapp/kotlin "-I$JAVA_HOME/include" "-I$JAVA_HOME/include/linux" \
//     -o app/libldpkit.so c/*.c c/posix/*.c c/kotlin/*.c app/kotlin/*.c
//   kotlinc -include-runtime -d app/sleep.jar c/kotlin/*.kt app/kotlin/*.kt examples/native/Sleep.kt
//   java -Djava.library.path=app -cp app/sleep.jar SleepKt app/journal-kotlin answer 7.5 no

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

fun stop(reason: String): Nothing {
    System.err.println(reason)
    exitProcess(2)
}

fun main(args: Array<String>) {
    val command = args.getOrNull(1)
    val hours = args.getOrNull(2)?.toDoubleOrNull()
    val pills = listOf("no", "yes").indexOf(args.getOrNull(3))
    val complete = if (command == "answer") args.size == 4 && hours != null && pills >= 0 else args.size == 2
    if (!complete || command !in listOf("answer", "withdraw", "send")) {
        stop("usage: SleepKt JOURNAL answer HOURS yes|no | withdraw | send")
    }
    try {
        Ledger(File(args[0]), LIFETIME_EPSILON).use { ledger ->
            when (command) {
                "answer" -> ledger.answer(StudySleep, listOf(Answer.Number(hours!!), Answer.Choice(pills)))
                "withdraw" -> ledger.withdraw(StudySleep)
            }
            // A report that is not confirmed waits for the next start: docs/payloads.md has the table of answers.
            val (done, waiting) = ledger.pending().partition(::send)
            done.forEach(ledger::done)
            println("${done.size} done, ${waiting.size} waiting")
            if (waiting.isNotEmpty()) exitProcess(1)
        }
    } catch (refused: LedgerException) {
        stop(refused.message!!)
    }
}
