// Package clickhousetest gives tests a ClickHouse: a given one, a container,
// or chdb. It may use testenv and what is embedded.
package clickhousetest
