# What ldpkit writes, read in R: for analysts who go on there.
#
# Run: Rscript examples/read_results.R POSTERIOR [REPORTS.csv], with the folder that `ldpkit fit --out` wrote and
# the file of `ldpkit export STUDY_ID --out REPORTS.csv`. Needs the packages jsonlite and ncdf4.
# Ends with 4 if a headline is not usable, as `ldpkit fit` does.

for (package in c("jsonlite", "ncdf4")) {
  if (!requireNamespace(package, quietly = TRUE)) {
    stop("install.packages(\"", package, "\") first", call. = FALSE)
  }
}
arguments <- commandArgs(trailingOnly = TRUE)
if (!length(arguments) %in% 1:2) stop("say which folder: read_results.R POSTERIOR [REPORTS.csv]", call. = FALSE)
folder <- arguments[1]

# A matrix of draws, all chains below one another, with a column for each parameter.
draws_of <- function(question) {
  file <- ncdf4::nc_open(file.path(folder, paste0(question, ".nc")))
  on.exit(ncdf4::nc_close(file))
  names <- grep("^posterior/", names(file$var), value = TRUE)
  columns <- lapply(names, function(name) {
    # ncdf4 turns the order of dimensions: (…, draw, chain).
    values <- ncdf4::ncvar_get(file, name, collapse_degen = FALSE)
    own <- sub("posterior/", "", name)
    size <- dim(values)
    if (length(size) == 2) return(matrix(values, ncol = 1, dimnames = list(NULL, own)))
    labels <- file$var[[name]]$dim[[1]]$vals
    matrix(aperm(values, c(2, 3, 1)), ncol = size[1], dimnames = list(NULL, paste0(own, "[", labels, "]")))
  })
  do.call(cbind, columns)
}

results <- jsonlite::fromJSON(file.path(folder, "posterior.json"))
good <- TRUE
for (question in names(results$questions)) {
  found <- results$questions[[question]]
  cat(question, " (", found$model, ", ", found$n, " reports): ", found$verdict$word, "\n", sep = "")
  # What should not be believed is said before the numbers.
  for (reason in unlist(found$verdict$reasons)) cat("  ", reason, "\n", sep = "")
  good <- good && found$verdict$word != "not usable"
  draws <- draws_of(question)
  quantiles <- t(apply(draws, 2, quantile, probs = c(0.05, 0.5, 0.95)))
  print(round(quantiles, 4))
}

if (length(arguments) == 2) {
  reports <- read.csv(arguments[2], check.names = FALSE, na.strings = "")
  cat(nrow(reports), "reports with columns", paste(names(reports), collapse = ", "), "\n")
  # Each is unbiased: their mean is a rough estimate without a model, which may lie below 0 or above 1.
  unbiased <- reports[startsWith(names(reports), "unbiased.")]
  for (name in names(unbiased)) {
    # Blank where a device was asked another question.
    values <- as.numeric(na.omit(unbiased[[name]]))
    cat("  ", name, ": mean ", mean(values), ", standard error ", sd(values) / sqrt(length(values)), "\n", sep = "")
  }
}
quit(status = if (good) 0 else 4)
