"""What published methods are made of: draws, conditionals, moments. Methods are the files beside this folder."""
