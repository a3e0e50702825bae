// Package plans holds what organizations subscribe to: their first plan,
// its changes, and the ends of periods and grants, also in tests, whose clock people set. It stands on unitofwork and
// balances.
package plans
