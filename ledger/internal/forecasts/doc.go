// Package forecasts predicts the outcome of a request, of a period and of
// another plan. It stands on snapshot, balances and plans.
package forecasts
