-- totals
delete from totals where d = :dss;
insert into totals select :ds;
commit;
