"""A batch in which nothing moves is told of, at growing distances; one in which tasks end is not."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.spark.batches.stalls import StallWatch, Work, work_of
from penstock.spark.session.start import session_settings

ONE_RUNS = (("127.0.0.2:4000", 1),)


class World:
    """A clock and a Spark that say what the test wants."""

    def __init__(self) -> None:
        self.now_s, self.work, self.asked = 100.0, Work(), 0
        self.watch = StallWatch(self._ask, lambda: self.now_s)

    def _ask(self) -> Work:
        self.asked += 1
        return self.work

    def after(self, seconds: float, *stages: tuple[int, int, int]) -> str | None:
        self.now_s += seconds
        self.work = Work(stages, ONE_RUNS if stages else ())
        return self.watch.news()


def test_a_short_batch_costs_no_question() -> None:
    world = World()
    for batch in range(100):
        world.watch.began(batch)
        assert world.after(2.9) is None
        world.watch.ended()
        assert world.after(60.0) is None
    assert world.asked == 0


def test_a_batch_without_progress_is_told_of_and_told_again_later() -> None:
    world = World()
    world.watch.began(7)
    told = [(second, world.after(1, (1, 4, 0))) for second in range(1, 110)]
    said = {second: text for second, text in told if text is not None}
    assert list(said) == [18, 33, 63]  # the task counted is seen at 3 s
    assert said[18] == (
        "batch 7 makes no progress: for 15 s no task has ended; 1 task runs on 127.0.0.2:4000"
    )


def test_a_batch_whose_tasks_end_is_not_told_of_however_long_it_takes() -> None:
    world = World()
    world.watch.began(7)
    assert not any(world.after(1, (1, second // 10, 0)) for second in range(300))
    assert world.after(14, (1, 30, 0)) is None
    assert world.after(20, (1, 30, 0)) is not None
    assert world.after(20, (1, 31, 0)) is None  # it goes on


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (Work(), "no task runs: the driver has the batch, in a sink or a function"),
        (Work(((1, 0, 0),)), "its tasks wait for an executor"),
        (Work(((1, 0, 0),), (("a:1", 2), ("b:2", 1))), "3 tasks run on a:1 and b:2"),
    ],
)
def test_where_the_batch_is(work: Work, said: str) -> None:
    assert str(work) == said


def test_spark_is_asked_for_what_runs(spark: SparkSession) -> None:
    assert work_of(spark.sparkContext) == Work()


def test_a_cluster_gives_up_an_executor_sooner_than_spark_would() -> None:
    assert session_settings("spark://h:7077")["spark.storage.blockManagerHeartbeatTimeoutMs"] == "30s"
    assert "spark.storage.blockManagerHeartbeatTimeoutMs" not in session_settings("local[2]")
