"""A test that hangs. The demo debugs it, so don't fix it."""

import threading


class Account:
    """Money, and the lock that one needs to move it."""

    def __init__(self, name: str) -> None:
        """Open an account."""
        self.name, self.balance, self.lock = name, 100, threading.Lock()

    def __repr__(self) -> str:
        """Return the name, and whether the account is locked."""
        return f"<{self.name}: {'locked' if self.lock.locked() else 'free'}>"


both_have_begun = threading.Barrier(2)


def transfer(payer: Account, payee: Account) -> None:
    """Move 10 from one account to another, while another transfer does the same."""
    with payer.lock:
        both_have_begun.wait()
        with payee.lock:
            payer.balance -= 10
            payee.balance += 10


if __name__ == "__main__":
    alice, bob = Account("alice"), Account("bob")
    threading.Thread(target=transfer, args=(alice, bob), daemon=True).start()
    transfer(bob, alice)
