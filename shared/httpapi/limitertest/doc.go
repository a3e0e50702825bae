// Package limitertest checks that what a module does for requests goes
// through an httpapi.Limiter. Only tests import it.
package limitertest
