// Package clickhouse is what an installation with ClickHouse needs there: tables,
// users and row policies, and settings of its servers. The package has only tests of these files.
package clickhouse
