import java.io.File
import ldpkit.Answer
import ldpkit.Ledger
import ldpkit.LedgerError
import ldpkit.LedgerException
import ldpkit.Study

/** Answers the vectors of a file, each with a ledger of its own: `VectorsKt VECTORS JOURNAL`. */
fun main(args: Array<String>) {
    val lines = File(args[0]).readLines()
    val failed = lines.withIndex().filter { (index, line) -> !passes(index, line, File(args[1])) }
    failed.take(20).forEach { println("failed: ${it.index} ${it.value}") }
    println("${lines.size - failed.size} of ${lines.size}")
}

object Vectors {
    external fun study(index: Int): Long
}

private fun passes(index: Int, line: String, journal: File): Boolean {
    val (answers, expected) = line.split('\t')
    journal.delete()
    return Ledger(journal, 1e9, 1.0).use { ledger ->
        val study = object : Study {
            override fun table() = Vectors.study(index)
        }
        try {
            ledger.answer(study, answers.split(' ').map(::read))
            ledger.pending().single().report.decodeToString() == expected
        } catch (refusal: LedgerException) {
            refusal.error == LedgerError.ANSWER && expected == "refused"
        }
    }
}

private fun read(text: String) = when (text[0]) {
    'n' -> Answer.Number(text.drop(1).toDouble())
    'c' -> Answer.Choice(text.drop(1).toLong().toInt())
    else -> Answer.Refusal
}
