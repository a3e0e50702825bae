// Package forecasts is what would become of a request, of a period and of
// another plan. It stands on snapshot, and on what balances and plans show.
package forecasts
