// Command backends starts what tests need, gives its addresses to a command
// by environment variables, runs the command and stops everything again. It
// ends with the command's exit code, and leaves alone what is given already
// (WEIR_TEST_DATABASE_URL, WEIR_TEST_BROKERS).
//
//	backends [-backend machine|kafka] [-measure] [-slowest n] -- go test ./...
package main
