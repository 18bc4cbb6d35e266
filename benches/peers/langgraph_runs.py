"""Runs of a workflow in LangGraph: how many steps a second, and how many bytes its file has per run.

    langgraph_runs.py WHAT RUNS DURABILITY

WHAT is `joke`, the prompt chain of LangGraph's page "Workflows and agents", or a number of steps that
follow each other. The models answer at once. DURABILITY is `memory`, or LangGraph's `async` or
`sync` with the SQLite checkpointer. Prints a line: steps a second, bytes per run.
"""

import os
import sys
import tempfile
import time
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


def answer(prompt):
    return "Answer to: " + prompt[:80]


class Joke(TypedDict):
    topic: str
    joke: str
    improved_joke: str
    final_joke: str


def joke():
    def check_punchline(state):
        return "Pass" if "?" in state["joke"] or "!" in state["joke"] else "Fail"

    def generate_joke(state):
        return {"joke": answer(f"Write a short joke about {state['topic']}")}

    def improve_joke(state):
        return {"improved_joke": answer(f"Make this joke funnier: {state['joke']}")}

    def polish_joke(state):
        return {"final_joke": answer(f"Add a surprising twist: {state['improved_joke']}")}

    graph = StateGraph(Joke)
    for node in (generate_joke, improve_joke, polish_joke):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "generate_joke")
    ways = {"Fail": "improve_joke", "Pass": END}
    graph.add_conditional_edges("generate_joke", check_punchline, ways)
    graph.add_edge("improve_joke", "polish_joke")
    graph.add_edge("polish_joke", END)
    # The check is a step, too.
    return graph, 4, "final_joke"


def chain(count):
    names = [f"s{number}" for number in range(count)]
    graph = StateGraph(TypedDict("Chain", {"topic": str, **{f"{it}_text": str for it in names}}))
    before, key = START, "topic"
    for name in names:
        graph.add_node(name, lambda state, k=key, n=name: {f"{n}_text": answer(n + " " + state[k])})
        graph.add_edge(before, name)
        before, key = name, f"{name}_text"
    graph.add_edge(before, END)
    return graph, count, key


def measure(graph, steps, last, runs, durability, saver):
    app = graph.compile(checkpointer=saver)

    def run(thread):
        config = {"recursion_limit": steps + 10, "configurable": {"thread_id": str(thread)}}
        ended = app.invoke({"topic": "cats"}, config, durability=durability)
        assert ended[last].startswith("Answer to: "), ended

    for thread in range(20):
        run(thread)
    began = time.perf_counter()
    for thread in range(20, 20 + runs):
        run(thread)
    return steps * runs / (time.perf_counter() - began)


def main():
    what, runs, durability = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    graph, steps, last = joke() if what == "joke" else chain(int(what))
    if durability == "memory":
        rate = measure(graph, steps, last, runs, "sync", InMemorySaver())
        return print(rate, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoints.db")
        with SqliteSaver.from_conn_string(path) as saver:
            rate = measure(graph, steps, last, runs, durability, saver)
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
        print(rate, size / (runs + 20))


main()
