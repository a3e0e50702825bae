// Package plans is what organizations subscribe to: their first plan,
// changes of it, and what time does to periods and grants. It stands on
// unitofwork, and shows a plan with its balance.
package plans
