// Package parked keeps the records that could not be applied: it lists them,
// and has them applied again or discarded. It touches one table and no
// broker; consumer sets records aside with it.
package parked
