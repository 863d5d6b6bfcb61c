# Totals and shares by the design of a sample: strata, clusters and weights, with R's package survey.
#
# Run: Rscript examples/sample_design.R TABLE.csv QUESTION [DESIGN.json], with the file of `ldpkit export STUDY_ID
# --out TABLE.csv`, or with a table of dice and its design, as `ldpkit survey` takes them. QUESTION has
# two answers, no and yes, and in DESIGN.json a matrix; figures are of the second answer. Of these columns the table
# has those that apply to the sample (in an export they are public fields):
#   weight   how many people a row represents
#   stratum  people or clusters were drawn in each stratum
#   cluster  people were drawn by household, class, village …
#   drawn    which share of its stratum's clusters (without clusters: of its people) was drawn, where all people of a
#            drawn cluster were asked. Without it the sample counts as small against the population.
# Needs the packages survey and, for DESIGN.json, jsonlite.

arguments <- commandArgs(trailingOnly = TRUE)
if (!length(arguments) %in% 2:3) stop("usage: sample_design.R TABLE.csv QUESTION [DESIGN.json]", call. = FALSE)
for (package in c("survey", if (length(arguments) == 3) "jsonlite")) {
  if (!requireNamespace(package, quietly = TRUE)) stop("install.packages(\"", package, "\") first", call. = FALSE)
}
table <- read.csv(arguments[1], check.names = FALSE, na.strings = "")
question <- arguments[2]

# 1. A column that averages 1 over the noise for people whose answer is yes, and 0 for all others.
number <- function(fraction) {
  parts <- as.numeric(strsplit(as.character(fraction), "/")[[1]])
  if (length(parts) == 2) parts[1] / parts[2] else parts
}
if (length(arguments) == 3) {
  column <- jsonlite::fromJSON(arguments[3])$columns[[question]]
  if (is.null(column$matrix) || length(column$matrix) != 4) {
    stop(arguments[3], ": state a matrix of two answers and two reports for ", question, call. = FALSE)
  }
  yes_given_no <- number(column$matrix[1, 2])
  yes_given_yes <- number(column$matrix[2, 2])
  reports <- match(table[[question]], column$reports) - 1
  unbiased <- (reports - yes_given_no) / (yes_given_yes - yes_given_no)
  answer <- column$answers[2]
} else {
  answer <- "yes"
  unbiased <- table[[paste0("unbiased.", question)]]
}
if (length(unbiased) == 0) stop(arguments[1], " has no column of ", question, call. = FALSE)
if (anyNA(unbiased)) {
  stop(arguments[1], ": ", sum(is.na(unbiased)), " rows have no report on ", question, call. = FALSE)
}

# 2. The sample's design.
people <- data.frame(yes = unbiased, weight = 1)
for (name in c("weight", "stratum", "cluster", "drawn")) {
  # An export names public fields public.ID.
  column_name <- intersect(c(name, paste0("public.", name)), names(table))
  if (length(column_name)) people[[name]] <- table[[column_name[1]]]
}
part <- function(name) if (name %in% names(people)) reformulate(name)
design <- survey::svydesign(
  ids = if ("cluster" %in% names(people)) ~cluster else ~1,
  strata = part("stratum"), weights = ~weight, fpc = part("drawn"), data = people, nest = TRUE
)
total <- survey::svytotal(~yes, design)
share <- survey::svymean(~yes, design)

# 3. The noise. The differences between people or clusters include it; where a share `drawn` of them was drawn, survey
# takes that share of it away. An answer is 0 or 1: (yes - 1) yes averages the variance of its noise.
taken_away <- if ("drawn" %in% names(people)) sum(with(people, drawn * weight^2 * yes * (yes - 1))) else 0
everyone <- sum(people$weight)

# 4. A line for each figure.
line <- function(name, estimate, sampling, noise) {
  error <- sqrt(sampling + noise)
  width <- qt(0.95, survey::degf(design)) * error
  cat(sprintf(
    paste0(
      "%s of %s = %s: %.10g, standard error %.10g, 90 %% interval %.4g to %.4g; ",
      "variance %.10g in the sample + %.10g of noise that it lacks\n"
    ),
    name, question, answer, estimate, error, estimate - width, estimate + width, sampling, noise
  ))
}
line("total", coef(total), vcov(total), taken_away)
line("share", coef(share), vcov(share), taken_away / everyone^2)
