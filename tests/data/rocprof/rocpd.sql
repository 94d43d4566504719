-- The views of rocprofv3's database that are read, over tables of this test's own.
CREATE TABLE rocpd_info_agent (absolute_index INTEGER, type TEXT, name TEXT, product_name TEXT);
INSERT INTO rocpd_info_agent VALUES (0, 'CPU', 'AMD EPYC', 'AMD EPYC'), (1, 'GPU', 'gfx90a', 'AMD Instinct MI250X');
CREATE TABLE dispatch (name TEXT, agent_abs_index INTEGER, dispatch_id INTEGER, start INTEGER, "end" INTEGER);
INSERT INTO dispatch VALUES ('fold(float*)', 1, 1, 1000, 5000), ('fold(float*)', 1, 2, 6000, 8000), ('scan(int*)', 1, 3, 8000, 9000);
CREATE VIEW kernels AS SELECT *, 512 AS grid_x, 2 AS grid_y, 1 AS grid_z, 128 AS workgroup_x, 1 AS workgroup_y,
    1 AS workgroup_z, 2048 AS lds_size, 0 AS scratch_size, 100 AS vgpr_count, 28 AS accum_vgpr_count, 40 AS sgpr_count
    FROM dispatch;
CREATE TABLE processes (command TEXT);
INSERT INTO processes VALUES ('./demo');
