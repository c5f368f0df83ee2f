"""Other libraries as hosts of yota's functions, and theirs as functions of yota's; each is imported when it is used."""
