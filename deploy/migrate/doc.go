// Package migrate migrates modules' schemas as the roles that own them, and
// grants the serving roles exactly what they need. It changes only databases.
package migrate
