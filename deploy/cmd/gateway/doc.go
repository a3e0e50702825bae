// Command gateway serves the whole API on one address and routes each
// request to the module that owns its path. It reads flags and
// environment; the wiring is in deploy/gateway/app.
package main
