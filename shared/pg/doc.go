// Package pg is how modules use PostgreSQL: a pool bound to the module's
// own schema, transactions as arguments, migrations, the organization
// for row level security, classes of errors. It has no module's table.
package pg
