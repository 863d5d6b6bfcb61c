"""Laws of perturbed choices: of each report's support set, and of counts."""
