import java.io.File
import ldpkit.Answer
import ldpkit.Ledger
import ldpkit.LedgerError
import ldpkit.LedgerException
import ldpkit.Study

/** Answers the vectors of a file, each with a ledger of its own: `VectorsKt VECTORS JOURNAL`. */
fun main(args: Array<String>) {
    val lines = File(args[0]).readLines()
    checkMisuse(lines[0], File(args[1]))
    val failed = lines.withIndex().filter { (index, line) -> !passes(index, line, File(args[1])) }
    failed.take(20).forEach { println("failed: ${it.index} ${it.value}") }
    println("${lines.size - failed.size} of ${lines.size}")
}

object Vectors {
    external fun study(index: Int): Long
}

private class VectorStudy(private val index: Int) : Study {
    override fun table() = Vectors.study(index)
}

/** Ends in an exception unless each mistake of an app does. */
private fun checkMisuse(line: String, journal: File) {
    check(runCatching { Ledger(journal, -1.0) }.exceptionOrNull() is IllegalArgumentException)
    val ledger = Ledger(journal, 0.001)
    check(refusal { Ledger(journal, 0.001) } == LedgerError.STORAGE)
    check(refusal { ledger.answer(VectorStudy(0), emptyList()) } == LedgerError.ANSWER)
    check(refusal { ledger.answer(VectorStudy(0), readAll(line), listOf(0)) } == LedgerError.ANSWER)
    check(refusal { ledger.answer(VectorStudy(0), readAll(line)) } == LedgerError.BUDGET)
    ledger.close()
    ledger.close()
    check(runCatching { ledger.pending() }.exceptionOrNull() is IllegalStateException)
}

private fun refusal(call: () -> Unit) = (runCatching(call).exceptionOrNull() as LedgerException).error

private fun passes(index: Int, line: String, journal: File): Boolean {
    val (answers, expected) = line.split('\t')
    journal.delete()
    return Ledger(journal, 1e9, 1.0).use { ledger ->
        try {
            ledger.answer(VectorStudy(index), readAll(answers))
            ledger.pending().single().report.decodeToString() == expected
        } catch (refusal: LedgerException) {
            refusal.error == LedgerError.ANSWER && expected == "refused"
        }
    }
}

private fun readAll(line: String) = line.substringBefore('\t').split(' ').map(::read)

private fun read(text: String) = when (text[0]) {
    'n' -> Answer.Number(text.drop(1).toDouble())
    'c' -> Answer.Choice(text.drop(1).toLong().toInt())
    else -> Answer.Refusal
}
