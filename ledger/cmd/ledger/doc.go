// Command ledger runs Weir's quota ledger. It turns flags and
// environment into the settings of ledger/app.
package main
