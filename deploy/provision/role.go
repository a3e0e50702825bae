package provision

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// roleScript makes a role that owns one database and can reach no other, and
// gives it the password that it should have. It may run again and again.
const roleScript = `SELECT 'CREATE ROLE %[1]s LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %[2]s)\gexec
ALTER ROLE %[1]s PASSWORD %[3]s;
SELECT 'CREATE DATABASE %[4]s OWNER %[1]s' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = %[5]s)\gexec
REVOKE ALL ON DATABASE %[4]s FROM PUBLIC;
`

// role is the script for the role and the database in the address in a file.
func role(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the address of a database: %w", err)
	}
	address, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return "", fmt.Errorf("the file %q holds no address of a database", file) // which it may show
	}
	password, given := address.User.Password()
	name, database := address.User.Username(), strings.TrimPrefix(address.Path, "/")
	if !given || name == "" || database == "" {
		return "", fmt.Errorf("the address in %q lacks a user, a password or a database", file)
	}
	return fmt.Sprintf(roleScript, identifier(name), literal(name), literal(password), identifier(database), literal(database)), nil
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string    { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
