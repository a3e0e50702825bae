// Package password hashes passwords slowly and compares them:
// argon2id in the PHC string format, which carries its parameters, so
// that old hashes stay valid when the parameters grow. It bounds how
// many are made at once, and touches no table.
package password
