"""What several verbs work out of tables: which replica answers, what is lost, configs, views."""
