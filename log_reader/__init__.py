"""Reading the log from the bucket alone: plan, ranges, fetch, columns, Parquet.

It needs no broker, no Redis and no Spark. The SDK, Spark and the inspecting commands read with it.
"""
