-- What a project's errors have in common, by which libraries are told from its own code: see Packages in the domain. One row for each project.
CREATE TABLE group_packages (
	organization text  NOT NULL CHECK (organization <> ''),
	project      text  NOT NULL,
	learned      jsonb NOT NULL,
	PRIMARY KEY (organization, project)
);
ALTER TABLE group_packages ENABLE ROW LEVEL SECURITY;
ALTER TABLE group_packages FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON group_packages USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
