// Package grants adds to what organizations may use beside their plans, and
// makes adjustments. It stands on unitofwork and snapshot.
package grants
