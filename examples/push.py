"""Pushes XML into a pump and reads what comes back, with nothing but the standard library.

    python3 examples/push.py 127.0.0.1:8765
"""

import socket
import struct
import sys
import xml.etree.ElementTree as ET

CORE = "{https://xml-pipeline.org/ns/core/v1}"
CALCULATE = "https://xml-pipeline.org/ns/calculate/v1"
ENVELOPE = "https://xml-pipeline.org/ns/envelope/v1"


class Pump:
    """A connection that speaks in lengths: four bytes before each message, both ways."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)

    def push(self, payload, thread=None, id=None):
        """Sends a payload: into a thread, under an id of ours, or neither."""
        message = ET.Element(f"{{{ENVELOPE}}}message")
        meta = ET.SubElement(message, f"{{{ENVELOPE}}}meta")
        for name, value in (("thread", thread), ("id", id)):
            if value is not None:
                ET.SubElement(meta, f"{{{ENVELOPE}}}{name}").text = value
        message.append(payload)
        data = ET.tostring(message, encoding="utf-8")
        self.socket.sendall(struct.pack(">I", len(data)) + data)

    def receive(self):
        """The next payload, and who sent it."""
        (length,) = struct.unpack(">I", self.exactly(4))
        meta, payload = ET.fromstring(self.exactly(length))
        return payload, meta.findtext(f"{{{ENVELOPE}}}from")

    def exactly(self, length):
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise EOFError("the pump ended the connection")
            data += piece
        return data


def calculate(expression):
    payload = ET.Element(f"{{{CALCULATE}}}calculate")
    ET.SubElement(payload, f"{{{CALCULATE}}}expression").text = expression
    return payload


def main(address):
    pump = Pump(address)

    # Each push is answered by <accepted>, or by <huh> where it is refused.
    pump.push(calculate("6*7"))
    accepted, _ = pump.receive()
    thread = accepted.get("thread")
    answer, sender = pump.receive()
    print(f"6*7 is {answer.findtext(f'{{{CALCULATE}}}value')}, says {sender}")

    # Into the same thread, under an id of ours, twice: it happens once.
    for _ in range(2):
        pump.push(calculate("2^10"), thread, id=f"{thread}-power")
    kinds = {}
    for _ in range(3):
        payload, _ = pump.receive()
        kinds.setdefault(payload.tag, []).append(payload)
    first, again = kinds[f"{CORE}accepted"]
    print(f"twice is once: {first.get('seq') == again.get('seq')}")

    # What is wrong comes back with a number, a place and advice.
    pump.push(ET.Element(f"{{{CALCULATE}}}calculate"))
    huh, _ = pump.receive()
    print(f"refused: {huh.get('code')}, {huh.findtext(f'{CORE}advice')}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8765")
