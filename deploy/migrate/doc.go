// Package migrate brings modules' schemas up to date as the roles that own them,
// and gives the roles that serve what serving needs and nothing else.
// It changes databases alone.
package migrate
