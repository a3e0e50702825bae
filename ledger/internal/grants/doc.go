// Package grants is what organizations may use beside their plans, and what is
// made good by hand. It stands on unitofwork and snapshot.
package grants
