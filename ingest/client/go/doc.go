// Package weir sends logs to Weir, by a [slog.Handler] or by [Client.Log].
//
// A call encodes its entry into a queue in memory, and returns. In the
// background entries leave in batches, compressed, each batch under one
// idempotency key, so that sending it again has one effect. Nothing is lost
// silently: [Stats], [Options.OnDrop] and an entry of level warn say what was
// dropped, and why.
package weir
