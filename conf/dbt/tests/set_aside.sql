-- Fails where `validate` has set segments aside, and dbt_project.yml does not say so.
SELECT file
FROM glob('{{ env_var("WAREHOUSE") }}/quarantined_segments/_delta_log/*')
WHERE NOT {{ var('set_aside') }}
