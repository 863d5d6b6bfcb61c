"""What published methods are made of: draws, conditionals, moments. The methods are beside this folder."""
