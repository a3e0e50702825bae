// Package clickhouse keeps entries as rows of ClickHouse, and searches and
// counts them. It speaks ClickHouse's HTTP interface, and may import the domain only.
package clickhouse
