"""A deployment that asks for a password, for the demo."""

import getpass

if __name__ == "__main__":
    getpass.getpass("Password for the bank: ")
    print("deployed")
