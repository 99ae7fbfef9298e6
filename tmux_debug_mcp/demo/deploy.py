"""A deployment that asks for a password, for the demo."""

import getpass

getpass.getpass("Password for the bank: ")
print("deployed")
