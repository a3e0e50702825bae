// Package budgets limits what projects and keys may use of their
// organization's quota. It stands on unitofwork and snapshot.
package budgets
