// Package clickhousetest gives tests a ClickHouse: a given one, a container,
// or chdb behind a small HTTP front. It may use testenv, and imports nothing
// else of Weir but what locks files.
package clickhousetest
