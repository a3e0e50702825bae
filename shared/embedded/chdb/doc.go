// Package chdb runs chdb, which is ClickHouse in process, behind a small HTTP
// front in Python, for tests and measurements on a machine without a ClickHouse. It installs
// it from PyPI, and may use files and ports of the machine.
package chdb
