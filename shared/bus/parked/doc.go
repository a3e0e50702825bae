// Package parked keeps the records that could not be applied: it lists
// them, and has them applied again or discarded. It uses one table and
// no broker; consumer parks records with it.
package parked
