#!/bin/sh
# Run once by the image, before ClickHouse serves: tables, row policies, and the user of ingest.
set -e
clickhouse-client --query "CREATE DATABASE IF NOT EXISTS weir"
clickhouse-client --multiquery < /schema/server.sql
clickhouse-client --query "CREATE USER IF NOT EXISTS weir_ingest IDENTIFIED WITH sha256_password BY '$(cat /run/secrets/clickhouse_password)' DEFAULT ROLE weir_writer"
