"""Questions of a new user, answered by the search box of the documentation site in a browser.

The questions were written before the pages were searched. A query has the words of a user who does
not know the terms of the pages.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.servers.browser import WatchedPage

RESULTS_READ = 3
"""A user reads this number of results."""


class Question(NamedTuple):
    """The page that must be among the first results, and a part of the answer in it."""

    text: str
    query: str
    page: str
    answer: str


class Answered(NamedTuple):
    question: str
    page: str
    rank: int
    """From 1."""
    seconds: float
    """From the query until the page with the answer is open."""


QUESTIONS = (
    Question(
        "How do I stop a consumer without losing its place?",
        "stop a consumer",
        "guides/consumer-service/",
        "consumer.stop ends process after the running calls",
    ),
    Question(
        "What happens if Redis is wiped?",
        "Redis is wiped",
        "durability/",
        "The brokers begin a new epoch, and fill Redis from the bucket",
    ),
    Question(
        "Do I lose records when a broker crashes?",
        "broker crash lose records",
        "durability/",
        "the record was in the bucket before it was acknowledged",
    ),
    Question(
        "How do I create a topic with six partitions?",
        "create a topic",
        "guides/topics/",
        "bucketlog topic create visits --partitions 6",
    ),
    Question(
        "Why does an acknowledgement take so long, and how do I make it faster?",
        "slow acknowledgement latency",
        "guides/cost-latency/",
        "BUCKETLOG_FLUSH_INTERVAL_MS",
    ),
    Question(
        "How do I keep records for seven days only?",
        "keep records seven days",
        "guides/topics/",
        "bucketlog topic alter visits --retention 7d",
    ),
    Question(
        "How do I connect a Java client?",
        "java client",
        "from-kafka/",
        "bootstrap.servers=localhost:9092",
    ),
    Question(
        "How do I turn on TLS?",
        "turn on TLS",
        "tls/",
        "BUCKETLOG_SSL_CERTIFICATE_FILE=/etc/bucketlog/tls.crt",
    ),
    Question(
        "How do I add a user with a password?",
        "add a user password",
        "logins/",
        "add and password ask for the new password on a terminal",
    ),
    Question(
        "How do I see how far a consumer group is behind, and get an alert?",
        "consumer group lag alert",
        "guides/lag/",
        "bucketlog group describe",
    ),
    Question(
        "How do I read a topic again from the beginning?",
        "read from the beginning again",
        "guides/read-again/",
        "bucketlog group reset reports --to start",
    ),
    Question(
        "How do I read a topic as a DataFrame?",
        "dataframe",
        "guides/dataframes/",
        "to_polars()",
    ),
    Question(
        "How do I write to two topics, all or nothing?",
        "write to two topics atomically",
        "transactions/",
        "BUCKETLOG_TRANSACTIONS=true",
    ),
    Question(
        "How do I back up the cluster?",
        "backup",
        "operations/",
        "A backup is a copy of the bucket",
    ),
    Question(
        "How much does it cost on S3?",
        "how much does it cost on S3",
        "cost/",
        "bucketlog cost",
    ),
    Question(
        "How do I run it on Kubernetes?",
        "kubernetes",
        "kubernetes/",
        "helm install log infra/helm",
    ),
    Question(
        "Which permissions does a broker need on the bucket?",
        "bucket permissions",
        "bucket/",
        "s3:PutObject",
    ),
    Question(
        "How do I upgrade without downtime?",
        "upgrade without downtime",
        "guides/upgrade/",
        "restart brokers one after the other",
    ),
    Question(
        "What do I do with a record that my program cannot handle?",
        "failed record",
        "guides/retries/",
        "set the record aside",
    ),
    Question(
        "How do I test my program without a server?",
        "test without a server",
        "testing/",
        "The cluster starts when the first test asks for it",
    ),
)


def ask(watched: WatchedPage, question: Question) -> Answered:
    """Type the query into the search box, read the first results, and open the expected page.

    Raises `AssertionError` if the page is not among them, or lacks the answer.
    """
    page = watched.open("")
    began = time.perf_counter()
    box = page.locator("[data-md-component=search-query]")
    box.fill(question.query)
    box.press("End")  # once the index is there, the page searches only when a key is released
    links = page.locator(".md-search-result__item > .md-search-result__link:first-child")
    links.first.wait_for()
    shown = [str(link.get_attribute("href")) for link in links.all()[:RESULTS_READ]]
    found = [url.partition("?")[0].removeprefix(watched.address) for url in shown]
    assert question.page in found, f"{question.query!r} finds {found}, not {question.page}"
    links.nth(found.index(question.page)).click()
    page.wait_for_url(f"**/{question.page}**")
    text = " ".join(page.inner_text("article").split())
    seconds = time.perf_counter() - began
    assert question.answer in text, f"{question.page} does not say: {question.answer}"
    return Answered(question.text, question.page, found.index(question.page) + 1, seconds)


def ask_all(watched: WatchedPage) -> Iterator[Answered]:
    for question in QUESTIONS:
        yield ask(watched, question)
