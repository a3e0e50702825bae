package provision

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// roleScript creates a role, and sets its password by a verifier. Like
// the other script it may run repeatedly.
const roleScript = `SELECT 'CREATE ROLE %[1]s LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %[2]s)\gexec
ALTER ROLE %[1]s PASSWORD %[3]s;
`

// databaseScript creates a database that one role owns with all its
// contents, and to which only one other may connect.
const databaseScript = `SELECT 'CREATE DATABASE %[1]s' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = %[2]s)\gexec
ALTER DATABASE %[1]s OWNER TO %[3]s;
REVOKE ALL ON DATABASE %[1]s FROM PUBLIC;
GRANT CONNECT ON DATABASE %[1]s TO %[4]s;
\connect %[1]s
REASSIGN OWNED BY %[4]s TO %[3]s;
\connect postgres
`

// roles returns the script for a database and its two roles, by the
// addresses in the files of the owning and the serving role.
func roles(ownerFile, servingFile string) (string, error) {
	owner, failedOwner := read(ownerFile)
	serving, failedServing := read(servingFile)
	if err := errors.Join(failedOwner, failedServing); err != nil {
		return "", err
	}
	if owner.database != serving.database || owner.role == serving.role {
		return "", fmt.Errorf("the addresses in %q and %q have to name two roles of one database", ownerFile, servingFile)
	}
	makeOwner, failedOwner := owner.script()
	makeServing, failedServing := serving.script()
	return makeOwner + makeServing + fmt.Sprintf(databaseScript,
		identifier(owner.database), literal(owner.database), identifier(owner.role), identifier(serving.role)), errors.Join(failedOwner, failedServing)
}

// An address holds the parts of a database's address.
type address struct{ role, password, database string }

func (a address) script() (string, error) {
	kept, err := verifier(a.password)
	if err != nil {
		return "", fmt.Errorf("the password of the role %q has characters that no password may have: choose another one", a.role)
	}
	return fmt.Sprintf(roleScript, identifier(a.role), literal(a.role), literal(kept)), nil
}

func read(file string) (a address, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return a, fmt.Errorf("cannot read the address of a database: %w", err)
	}
	parsed, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return a, fmt.Errorf("the file %q holds no address of a database", file) // the file's name may be shown
	}
	password, given := parsed.User.Password()
	a = address{parsed.User.Username(), password, strings.TrimPrefix(parsed.Path, "/")}
	if !given || a.role == "" || a.database == "" {
		return a, fmt.Errorf("the address in %q lacks a user, a password or a database", file)
	}
	return a, nil
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string    { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
