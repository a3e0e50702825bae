// Package clickhousetest gives tests a ClickHouse: a given one, or chdb. It
// may use testenv and what is embedded.
package clickhousetest
